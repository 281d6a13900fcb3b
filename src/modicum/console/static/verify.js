// The chain of the ledger, verified in the browser: every hash is computed here.

const PAGE = 500;
const HASH = /^[0-9a-f]{64}$/;

/** What does not hold, in words for people. */
class Broken extends Error {}

const encoder = new TextEncoder();

async function sha256(text) {
  const digest = await crypto.subtle.digest("SHA-256", encoder.encode(text));
  return [...new Uint8Array(digest)]
    .map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Return a page of the proof; waits if the server asks for patience. */
async function page(address, cursor) {
  const query = new URLSearchParams({ limit: PAGE, cursor });
  for (;;) {
    const answer = await fetch(`${address}?${query}`);
    if (answer.ok) return answer.json();
    const wait = Number(answer.headers.get("Retry-After"));
    if (answer.status !== 429 || !wait) {
      throw new Error(`the server answered with status ${answer.status}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 1000 * Math.min(wait, 60)));
  }
}

/** Return the noted heads: {seq, head, source}. */
function noted(text) {
  return text.split(/\s+/).filter(Boolean).map((line) => {
    const [seq, head] = line.toLowerCase().split(":");
    if (!/^[1-9][0-9]*$/.test(seq) || !HASH.test(head || "")) {
      throw new Error(`“${line}” is no number and hash, such as 7:${"0".repeat(64)}`);
    }
    return { seq: Number(seq), head, source: "you noted" };
  });
}

/** Return the head that a checkpoint or a receipt claims. */
function claimed(signed, source) {
  const claim = signed?.claim;
  if (!Number.isInteger(claim?.seq) || !HASH.test(claim?.head)) {
    throw new Error(`${source} is no checkpoint and no receipt`);
  }
  return { seq: claim.seq, head: claim.head, ledger: claim.ledger, source };
}

async function kept(files) {
  return Promise.all([...files].map(async (file) => {
    let signed = null;
    try {
      signed = JSON.parse(await file.text());
    } catch { /* It is refused below. */ }
    return claimed(signed, `the file ${file.name} claims`);
  }));
}

/** Check a link, whose hash was computed, against the entry before it. */
function follows(link, digest, before) {
  const seq = before.seq + 1;
  if (link.seq !== seq) {
    throw new Broken(`Entry ${seq} is missing: entry ${link.seq} comes instead.`);
  }
  if (digest !== link.hash) {
    throw new Broken(`Entry ${seq} does not hold: its contents have the hash ` +
      `${digest}, but its stored hash is ${link.hash}.`);
  }
  let stored = {};
  try {
    stored = JSON.parse(link.payload);
  } catch { /* It names nothing, then. */ }
  if (stored.seq !== seq || stored.prev !== before.hash) {
    throw new Broken(`Entry ${seq} does not hold: it does not name the hash of ` +
      `entry ${before.seq}, ${before.hash}.`);
  }
}

/** Check what is known about an entry. */
function matches(seq, hash, known) {
  for (const one of known.filter((each) => each.seq === seq)) {
    if (one.head !== hash) {
      throw new Broken(`Entry ${seq} has the hash ${hash}, but ${one.source} ` +
        `${one.head}.`);
    }
  }
}

/** Verify the chain; returns its end, and the published checkpoints. */
async function verify(address, known, report) {
  let before = { seq: 0, hash: "0".repeat(64) };
  let cursor = "";
  let first = "";
  let checkpoints = [];
  do {
    const found = await page(address, cursor);
    const own = found.checkpoints.map((one) => claimed(one, "a checkpoint claims"));
    const all = [...known, ...own];
    checkpoints = own;
    first ||= found.first;
    for (const one of all) {
      if (one.ledger && one.ledger !== first) {
        throw new Broken(`This is another ledger: ${one.source} entry ${one.seq} of ` +
          `the ledger ${one.ledger}, and this one is ${first}.`);
      }
    }
    const digests = await Promise.all(found.links.map((one) => sha256(one.payload)));
    for (const [at, link] of found.links.entries()) {
      follows(link, digests[at], before);
      matches(link.seq, link.hash, all);
      before = { seq: link.seq, hash: link.hash };
      if (link.seq === 1 && link.hash !== first) {
        throw new Broken(`Entry 1 has the hash ${link.hash}, not ${first}.`);
      }
    }
    report(before.seq, found.ledger.seq);
    cursor = found.next || "";
    if (!cursor && (found.ledger.seq !== before.seq || found.ledger.head !== before.hash)) {
      throw new Broken(`The chain ends at entry ${before.seq} with ${before.hash}, but ` +
        `the head is entry ${found.ledger.seq} with ${found.ledger.head}.`);
    }
  } while (cursor);
  for (const one of [...known, ...checkpoints]) {
    if (one.seq > before.seq) {
      throw new Broken(`Entry ${one.seq} is missing: the chain ends at entry ` +
        `${before.seq}, but ${one.source} ${one.head}.`);
    }
  }
  return { ...before, checkpoints };
}

function count(number, one, many) {
  return `${number} ${number === 1 ? one : many}`;
}

function set_up(box) {
  const button = box.querySelector("button[type=button]");
  const bar = box.querySelector("progress");
  const result = box.querySelector("[data-result]");

  function show(kind, ...lines) {
    result.className = kind;
    result.replaceChildren(...lines.map((line) => {
      const paragraph = document.createElement("p");
      paragraph.textContent = line;
      return paragraph;
    }));
  }

  async function run() {
    const shown = { seq: Number(box.dataset.seq), head: box.dataset.head,
      source: "this page shows" };
    const given = [...noted(box.querySelector("#noted").value),
      ...(await kept(box.querySelector("#claims").files))];
    const known = [...given, ...(shown.seq ? [shown] : [])];
    bar.parentElement.hidden = false;
    show("", "Verifying…");
    const end = await verify(box.dataset.verify, known, (done, total) => {
      bar.value = total ? done / total : 1;
    });
    const lines = [`✓ ${end.seq} of ${count(end.seq, "entry", "entries")}: the chain ` +
      `holds. Its head ${end.hash} ${end.seq === shown.seq ? "equals the head shown" :
        `is newer than the head shown, which is that of entry ${shown.seq}`}.`];
    if (given.length) {
      lines.push(`✓ ${count(given.length, "noted head matches", "noted heads match")}.`);
    }
    if (end.checkpoints.length) {
      lines.push(`✓ ${count(end.checkpoints.length, "published checkpoint matches",
        "published checkpoints match")}. Signatures were not checked.`);
    }
    show("done", ...lines);
  }

  button.disabled = false;
  button.addEventListener("click", async () => {
    if (!globalThis.isSecureContext || !globalThis.crypto?.subtle) {
      show("warning", "Browsers compute hashes only on pages of https or of localhost. " +
        "Open this server that way, or run  modicum audit verify  on a bundle.");
      return;
    }
    button.disabled = true;
    try {
      await run();
    } catch (error) {
      if (error instanceof Broken) show("problem", `■ ${error.message}`);
      else show("warning", `Not verified: ${error.message}.`);
    } finally {
      button.disabled = false;
    }
  });
}

const box = document.querySelector("[data-verify]");
if (box) set_up(box);
