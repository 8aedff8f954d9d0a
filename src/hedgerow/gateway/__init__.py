"""The gateway: one address in front of every provider, for clients that cannot carry hedgerow themselves."""
