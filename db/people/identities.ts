/**
 * Owns: which account a subject of an issuer is. The first sign-in links it: to the account that was invited by its verified email, else to
 * a new account, which belongs to no workspace. Who has an account already and is invited by a new email gets what the invited one had.
 */
import { z } from 'zod';
import { type AccountId, uuidv7 } from '../../src/kernel/ids.ts';
import { type Database, type Executor, sql } from '../pool.ts';
import { type AbsorbedConversation, absorbAccount } from './absorb.ts';

export interface Subject {
  readonly issuer: string;
  readonly subject: string;
}

export interface SubjectFacts extends Subject {
  /** Verified by the issuer and normalised; null: none. */
  readonly email: string | null;
  readonly displayName: string;
  /** IANA name, for a new account. */
  readonly timeZone: string;
}

const identityRow = z.object({ account_id: z.string(), email: z.string().nullable() });
const accountRow = z.object({ account_id: z.string() });
const doneRow = z.object({});

/**
 * One at a time: whoever decides which account an email or a subject is. It is a statement of its own before the reads, so that they see what
 * the one before wrote.
 */
const LINKING_LOCK = 6_870_001;
export async function lockLinking(tx: Executor): Promise<void> {
  await tx.any(sql.type(doneRow)`select from pg_advisory_xact_lock(${LINKING_LOCK}::bigint)`);
}

/** The account of a subject that has signed in before; null for any other. */
export async function findIdentity(db: Executor, { issuer, subject }: Subject): Promise<AccountId | null> {
  return (await readIdentity(db, { issuer, subject }))?.accountId ?? null;
}

async function readIdentity(db: Executor, { issuer, subject }: Subject): Promise<{ accountId: AccountId; email: string | null } | null> {
  const row = await db.maybeOne(sql.prepared('people_find_identity', identityRow)`
    select account_id, email from account_identity where issuer = ${issuer} and subject = ${subject}`);
  return row && { accountId: row.account_id as AccountId, email: row.email };
}

export interface Recognised {
  readonly accountId: AccountId;
  /** Conversations that came to the account from one that was invited, to be told. */
  readonly absorbed: readonly AbsorbedConversation[];
}

/** The account of a subject that signs in now. */
export async function recogniseSubject(db: Database, facts: SubjectFacts): Promise<Recognised> {
  const known = await readIdentity(db, facts);
  if (known && (facts.email === null || facts.email === known.email)) return { accountId: known.accountId, absorbed: [] };
  return db.transaction(async (tx) => {
    await lockLinking(tx);
    const claiming = (await readIdentity(tx, facts))?.accountId;
    const absorbed = claiming ? await absorbInvited(tx, claiming, facts) : [];
    const accountId = claiming ?? (await invitedAccount(tx, facts)) ?? (await newAccount(tx, facts));
    await giveEmail(tx, accountId, facts);
    return { accountId, absorbed };
  });
}

async function absorbInvited(tx: Executor, claiming: AccountId, { email }: SubjectFacts): Promise<readonly AbsorbedConversation[]> {
  const invited = await readInvitation(tx, email);
  const absorbed = invited && (await absorbAccount(tx, { absorbed: invited, claiming }));
  if (absorbed) await takeInvitation(tx, invited);
  return absorbed ?? [];
}

async function readInvitation(tx: Executor, email: string | null): Promise<AccountId | null> {
  const row = await tx.maybeOne(sql.type(accountRow)`select account_id from account_invitation where email = ${email}`);
  return row && (row.account_id as AccountId);
}

async function takeInvitation(tx: Executor, accountId: AccountId): Promise<void> {
  await tx.any(sql.type(doneRow)`delete from account_invitation where account_id = ${accountId} returning 1`);
}

/** Takes the invitation away. An account that has only the name of its invitation gets the name of its person. */
async function invitedAccount(tx: Executor, { email, displayName }: SubjectFacts): Promise<AccountId | null> {
  const invited = await readInvitation(tx, email);
  if (email === null || invited === null) return null;
  await takeInvitation(tx, invited);
  await tx.any(sql.type(doneRow)`
    update account set display_name = ${displayName} where id = ${invited} and display_name = ${nameOfEmail(email)} returning 1`);
  return invited;
}

/** What an invited account is called until its person signs in. */
export function nameOfEmail(email: string): string {
  return email.split('@', 1)[0] as string;
}

async function newAccount(tx: Executor, { displayName, timeZone }: SubjectFacts): Promise<AccountId> {
  const id = uuidv7<'account'>();
  await tx.any(
    sql.type(doneRow)`insert into account (id, display_name, time_zone) values (${id}, ${displayName}, ${timeZone}) returning 1`,
  );
  return id;
}

/** The email leaves the identity that had it before: an issuer may give the address of one person to another. */
async function giveEmail(tx: Executor, accountId: AccountId, { issuer, subject, email }: SubjectFacts): Promise<void> {
  await tx.any(sql.type(doneRow)`
    update account_identity set email = null where email = ${email} and (issuer, subject) <> (${issuer}, ${subject}) returning 1`);
  await tx.any(sql.type(doneRow)`
    insert into account_identity as i (issuer, subject, account_id, email) values (${issuer}, ${subject}, ${accountId}, ${email})
    on conflict on constraint account_identity_pk do update set email = coalesce(excluded.email, i.email) returning 1`);
}
