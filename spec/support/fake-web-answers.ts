/**
 * Owns: what the stand-in server answers: a piece of everything that an answer may hold.
 */
const everything = `Here is what I found. A **lease** ends in one of three ways, see [the page](https://example.org/leases) or \`ledger/renew.sql\`:

1. the loop *ends* the turn and the lease with it,
2. the reaper takes it back after \`60 s\`,
3. a person stops the turn.

## How a renewal is written

\`\`\`ts
/** Renews a lease; null when it was lost. */
export async function renew(run: RunId, epoch: number): Promise<Lease | null> {
  const row = await pool.maybeOne(sql.prepared(renewLease)\`\${run}, \${epoch}\`);
  return row === null ? null : { ttlMs: row.lease_ttl_ms, deadlineMs: row.deadline_ms }; // a long line that has to scroll inside its block
}
\`\`\`

| State | Leased | Slot | Who ends it |
|--|--|--|--|
| QUEUED | no | – | a claim |
| RUNNING | yes | held | the loop, or the reaper |
| STOPPED | until the loop ends it | held | the loop, or the reaper |

> A stopped turn keeps its slot until its loop has ended.

- [x] checked the ledger
- [ ] asked the gateway

The load is $$\\rho = \\frac{\\lambda}{\\mu} \\le 1$$, and it costs $5 a day. ![a chart](https://example.org/chart.png)

זה פסק זמן בעברית עם Latin בתוכו.

A very long word: ${'Donaudampfschifffahrtsgesellschaft'.repeat(4)}. <img src=x onerror=alert(1)> [no](javascript:alert(1))
`;

export const showcase = {
  everything,
  short: 'A lease ends when its loop ends the turn, when the reaper takes it back, or when a person stops it.',
};
