/**
 * Owns: who asks on the operations listener: a token of a role, a session of the operators' site or a token of the issuer, or this machine.
 * - A token of a role is compared as its SHA-256, with each one that there is, in constant time. It is never logged.
 * - A session counts on the name of HEPH_OPS_PUBLIC_URL only, under its rules for Host and Origin (auth/public-site.ts).
 * - This machine is every role as long as nothing else says who an operator is (auth/local.ts); where commands of the assistant run as the
 *   user of this server, whoever has the key of the terminal or has signed in with it (auth/browser-key.ts).
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type Koa from 'koa';
import { findOperatorRole } from '../../../db/ops/operators.ts';
import { touchSession } from '../../../db/people/sessions.ts';
import type { Executor } from '../../../db/pool.ts';
import type { OpsRole } from '../../contract/operators.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { AccountId } from '../../kernel/ids.ts';
import { secretHash } from '../../kernel/secret-hash.ts';
import type { BrowserKey } from '../auth/browser-key.ts';
import type { Cookies } from '../auth/cookies.ts';
import { isLocal, requireLocalAdmin } from '../auth/local.ts';
import type { PublicSite } from '../auth/public-site.ts';
import type { BearerDoor } from '../ports.ts';
import type { AdminGuard, Operator } from './operator-guard.ts';

/** `hash`: the SHA-256 of the token. */
export interface RoleToken {
  readonly role: OpsRole;
  readonly hash: Buffer;
}

export interface OperatorDoorOptions {
  /** The operators' own pool: who asks is known also while the server's is busy. */
  readonly db: Executor;
  readonly tokens: readonly RoleToken[];
  /** SHA-256; null: `/metrics` is open. */
  readonly metricsToken: Buffer | null;
  /** This machine is every role. */
  readonly local: boolean;
  /** What proves that a person of this machine asks, where commands of the assistant come from it, too; null: being this machine does. */
  readonly keyboard?: BrowserKey | null;
  /** The operators' site; null: nobody signs in here. */
  readonly signIn: { readonly site: PublicSite; readonly cookies: Cookies; readonly sessionIdleMs: number } | null;
  /** Tokens of the issuer; null: none are taken. */
  readonly bearer: BearerDoor | null;
}

export const OPS_SIGN_IN_URL = '/ops/sign-in';
/** A session that was used within this time is not written again. */
const TOUCH_AFTER_MS = 60_000;

export function operatorDoor(options: OperatorDoorOptions): AdminGuard {
  const { db, tokens, metricsToken, local, keyboard, signIn, bearer } = options;
  const isRemote = tokens.length > 0 || signIn !== null || bearer !== null;

  async function byToken(ctx: Koa.Context, token: string): Promise<Operator> {
    if (local && keyboard?.isOperatorKey(token)) return requireLocalAdmin.who(ctx);
    const role = roleOf(tokens, token);
    if (role !== null) return { name: `token:${role}`, role };
    try {
      if (!bearer) throw new RuntimeFault('UNAUTHENTICATED', 'This token is none of this installation. Use one of HEPH_OPS_…_TOKEN.');
      return await byAccount(db, (await bearer.verify(token)).accountId);
    } catch (error) {
      if (error instanceof RuntimeFault && error.code === 'UNAUTHENTICATED') ctx.set('WWW-Authenticate', 'Bearer error="invalid_token"');
      throw error;
    }
  }

  /** null: the browser has no session that lives. */
  async function bySession(ctx: Koa.Context): Promise<Operator | null> {
    const secret = signIn?.site.isHost(ctx) ? signIn.cookies.read(ctx, 'session') : null;
    if (!signIn || !secret) return null;
    signIn.site.requireOwnPage(ctx);
    const session = { sessionId: secretHash(secret), idleMs: signIn.sessionIdleMs, touchAfterMs: TOUCH_AFTER_MS };
    const accountId = await touchSession(db, session);
    return accountId && byAccount(db, accountId);
  }

  return {
    admit(ctx) {
      if (!isRemote) requireLocalAdmin.admit(ctx);
    },
    async who(ctx) {
      const token = bearerOf(ctx);
      if (token !== null) return byToken(ctx, token);
      const signedIn = await bySession(ctx);
      if (signedIn) return signedIn;
      if (local && (!isRemote || isLocal(ctx))) {
        const operator = requireLocalAdmin.who(ctx);
        keyboard?.requireOperator(ctx);
        return operator;
      }
      throw unknown(ctx, signIn);
    },
    ...(metricsToken === null
      ? {}
      : {
          async metrics(ctx: Koa.Context) {
            const token = bearerOf(ctx);
            const known = token !== null && (timingSafeEqual(hashOf(token), metricsToken) || roleOf(tokens, token) !== null);
            if (known) return;
            ctx.set('WWW-Authenticate', 'Bearer');
            throw new RuntimeFault(
              'UNAUTHENTICATED',
              'Send HEPH_OPS_METRICS_TOKEN as a Bearer token (Prometheus: authorization.credentials).',
            );
          },
        }),
  };
}

/** Also what can be no token: whoever shows one is judged by it, and not as this machine. */
function bearerOf(ctx: Koa.Context): string | null {
  return /^Bearer\b\s*(.*)$/i.exec(ctx.get('authorization').trim())?.[1] ?? null;
}

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest();

/** Every token is compared, whichever fits. */
function roleOf(tokens: readonly RoleToken[], token: string): OpsRole | null {
  const hash = hashOf(token);
  const fitting = tokens.filter((one) => timingSafeEqual(one.hash, hash));
  return fitting[0]?.role ?? null;
}

async function byAccount(db: Executor, accountId: AccountId): Promise<Operator> {
  const role = await findOperatorRole(db, accountId);
  if (role) return { name: accountId, role };
  const text = 'You are signed in, and no operator of this installation. Ask one who is admin for: heph operator set YOUR-EMAIL viewer.';
  throw new RuntimeFault('FORBIDDEN', text, { extra: { needs: 'viewer' } });
}

function unknown(ctx: Koa.Context, signIn: OperatorDoorOptions['signIn']): RuntimeFault {
  ctx.set('WWW-Authenticate', 'Bearer');
  if (signIn?.site.isHost(ctx))
    return new RuntimeFault('SIGNED_OUT', 'Nobody is signed in here. Sign in, or send a token of a role.', {
      extra: { signInUrl: OPS_SIGN_IN_URL },
    });
  const where = signIn ? `Open ${signIn.site.origin}/ops and sign in, or send` : 'Send';
  const how =
    'Authorization: Bearer with one of HEPH_OPS_VIEWER_TOKEN, HEPH_OPS_OPERATOR_TOKEN, HEPH_OPS_ADMIN_TOKEN (heph: HEPH_OPS_TOKEN)';
  return new RuntimeFault('UNAUTHENTICATED', `Say who you are. ${where} ${how}.`);
}
