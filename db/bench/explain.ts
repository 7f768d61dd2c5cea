/**
 * Owns: what a statement of ours costs PostgreSQL: it is run once more under EXPLAIN (ANALYZE, BUFFERS), exactly as it would be sent.
 */
import { z } from 'zod';
import type { Executor, Query } from '../pool.ts';

export interface Explained {
  /** Pages of 8 KiB that it touched, in the cache or not. */
  readonly pages: number;
  readonly executionMs: number;
  /** Each node of the plan with its table or index, outermost first. */
  readonly nodes: readonly string[];
}

const planRow = z.object({ 'QUERY PLAN': z.array(z.looseObject({ Plan: z.looseObject({}), 'Execution Time': z.number() })) });

interface Node {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Shared Hit Blocks'?: number;
  readonly 'Shared Read Blocks'?: number;
  readonly Plans?: readonly Node[];
}

function nodesOf(node: Node): string[] {
  const at = node['Index Name'] ?? node['Relation Name'];
  return [`${node['Node Type']}${at ? ` ${at}` : ''}`, ...(node.Plans ?? []).flatMap(nodesOf)];
}

/** Explains every statement that `work` sends; their answers are as always. */
export async function explain(db: Executor, work: (db: Executor) => Promise<unknown>): Promise<Explained[]> {
  const explained: Explained[] = [];
  const look = async (query: Query<unknown>): Promise<void> => {
    const { sql, values, type } = query;
    const text = `explain (analyze, buffers, format json) ${sql}`;
    const row = await db.one({ type, sql: text, values, parser: planRow } as unknown as Query<z.infer<typeof planRow>>);
    const [plan] = row['QUERY PLAN'];
    const top = plan?.Plan as unknown as Node;
    const pages = (top['Shared Hit Blocks'] ?? 0) + (top['Shared Read Blocks'] ?? 0);
    explained.push({ pages, executionMs: plan?.['Execution Time'] ?? 0, nodes: nodesOf(top) });
  };
  const looked = async <T>(query: Query<unknown>, answer: () => Promise<T>): Promise<T> => {
    await look(query);
    return answer();
  };
  await work({
    any: (query) => looked(query, () => db.any(query)),
    one: (query) => looked(query, () => db.one(query)),
    maybeOne: (query) => looked(query, () => db.maybeOne(query)),
  });
  return explained;
}
