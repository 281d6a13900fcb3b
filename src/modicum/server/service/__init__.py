"""The operations of the service, each with the caller as the first argument."""
