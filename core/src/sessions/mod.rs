//! Sign-in, access tokens, rotating refresh tokens.
