// An OpenID provider for tests: certified code, accounts by name, keys made at start.
// Usage: node oidc_provider.mjs FOLDER PORT REDIRECT_URI; FOLDER holds node_modules.

const [folder, port, redirectUri] = process.argv.slice(2);
const { Provider } = await import(
  `${folder}/node_modules/oidc-provider/lib/index.js`
);

const AUDIENCE = 'https://privacy.example.org/api';
const issuer = `http://127.0.0.1:${port}`;

// What each account is: its claims, beyond the name that it signs in with.
const accounts = {
  dana: { email: 'dana@example.org', email_verified: true, groups: ['privacy-team'] },
  ann: { email: 'ann@example.org', email_verified: true, groups: ['labs', 'unknown'] },
  nora: { email: 'nora@example.org', email_verified: true, groups: ['unknown'] },
  mallory: { email: 'dana@example.org', email_verified: false, groups: ['labs'] },
  shouting: { email: 'DANA@example.org', email_verified: true, groups: ['labs'] },
  both: {
    email: 'both@example.org',
    email_verified: true,
    groups: ['privacy-team', 'auditors'],
  },
};

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'modicum',
      client_secret: 'canary-client-secret',
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code'],
      response_types: ['code'],
    },
    {
      client_id: 'nightly-etl',
      client_secret: 'nightly-secret',
      redirect_uris: [],
      response_types: [],
      grant_types: ['client_credentials'],
    },
    {
      client_id: 'stranger',
      client_secret: 'stranger-secret',
      redirect_uris: [],
      response_types: [],
      grant_types: ['client_credentials'],
    },
  ],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
  scopes: ['openid', 'email', 'groups'],
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  cookies: { keys: ['only for tests'] },
  ttl: { ClientCredentials: 600, Session: 600, Interaction: 600, Grant: 600 },
  features: {
    devInteractions: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      getResourceServerInfo: (ctx, resource) => ({
        audience: resource,
        scope: '',
        accessTokenFormat: 'jwt',
        accessTokenTTL: 600,
      }),
    },
  },
  findAccount: (ctx, id) => ({
    accountId: id,
    claims: () => ({ sub: id, ...accounts[id] }),
  }),
});

provider.listen(Number(port), '127.0.0.1', () => {
  console.log(`ready ${issuer} ${AUDIENCE}`);
});
