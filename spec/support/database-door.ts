/**
 * A database that is taken away from servers for real: no new session is let in, and sessions are ended by the name of who has them
 * (`heph-listen`, `heph-host-lock`, `heph-server`, …). The spec's own pools stay.
 */
import { z } from 'zod';
import { type Database, sql } from '../../db/pool.ts';
import { openTestDatabase } from './database.ts';

const row = z.object({ n: z.number() });

export class DatabaseDoor {
  readonly #admin: Database;
  readonly #name: string;

  private constructor(admin: Database, name: string) {
    this.#admin = admin;
    this.#name = name;
  }

  static async of(url: string): Promise<DatabaseDoor> {
    const admin = new URL(url);
    const name = admin.pathname.slice(1);
    admin.pathname = '/postgres';
    return new DatabaseDoor(await openTestDatabase(admin.toString(), 2), name);
  }

  /** Shuts the door and ends the sessions of these applications. */
  async shut(...applications: readonly string[]): Promise<void> {
    await this.#allow(false);
    await this.#admin.any(sql.type(row)`
      with theirs as materialized (
        select pid from pg_stat_activity where datname = ${this.#name} and application_name = any(${sql.array([...applications], 'text')})
      )
      select count(pg_terminate_backend(pid))::int as n from theirs`);
  }

  async open(): Promise<void> {
    await this.#allow(true);
  }

  /** Opens it, and lets go. */
  async close(): Promise<void> {
    await this.open();
    await this.#admin.close();
  }

  async #allow(allowed: boolean): Promise<void> {
    await this.#admin.any(sql.type(row)`update pg_database set datallowconn = ${allowed} where datname = ${this.#name} returning 1 as n`);
  }
}
