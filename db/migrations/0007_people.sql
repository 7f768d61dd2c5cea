-- Up Migration
-- How a person is recognised: what their issuer calls them, who was invited, what is signed in now. Secrets are stored as SHA-256 only.

-- A subject of an issuer is one account, for ever.
create table account_identity (
  issuer text not null check (char_length(issuer) between 1 and 2000),
  subject text not null check (char_length(subject) between 1 and 255),
  account_id uuid not null references account on delete restrict,
  -- What the issuer last said, and only when it had verified it; normalised (src/people/email.ts). It names the identity that had it last.
  email text check (char_length(email) between 3 and 254),
  created_at timestamptz not null default clock_timestamp(),
  constraint account_identity_pk primary key (issuer, subject),
  constraint ux_account_identity_email unique (email)
);
create index ix_account_identity_account on account_identity (account_id);

-- An account that nobody has signed in to yet waits for the first sign-in with this verified email, which takes the row away.
create table account_invitation (
  email text primary key check (char_length(email) between 3 and 254),
  account_id uuid not null unique references account on delete restrict,
  created_at timestamptz not null default clock_timestamp()
);

-- A sign-in that has begun. It ends once, in the browser in which it began.
create table sign_in_attempt (
  state_hash bytea primary key check (octet_length(state_hash) = 32),
  browser_hash bytea not null check (octet_length(browser_hash) = 32),
  -- Where to go afterwards: a path of this site.
  return_path text not null check (return_path ~ '^/([^/\\]|$)' and char_length(return_path) <= 2000),
  created_at timestamptz not null default clock_timestamp(),
  ends_at timestamptz not null
);
create index ix_sign_in_attempt_created on sign_in_attempt (created_at);
create index ix_sign_in_attempt_browser on sign_in_attempt (browser_hash);

-- Rule R16: a request, a stream and each event of it are shown only while their session lives, by the database clock.
create table web_session (
  id_hash bytea primary key check (octet_length(id_hash) = 32),
  account_id uuid not null references account on delete restrict,
  created_at timestamptz not null default clock_timestamp(),
  last_seen_at timestamptz not null default clock_timestamp(),
  -- Moves with use, up to the last moment.
  ends_at timestamptz not null,
  last_moment_at timestamptz not null,
  constraint web_session_bounded check (ends_at <= last_moment_at)
);
create index ix_web_session_account on web_session (account_id, last_seen_at);
create index ix_web_session_ends on web_session (ends_at);
