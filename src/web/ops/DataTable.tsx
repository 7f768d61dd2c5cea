/**
 * Owns: a table of the operator page: a caption for everybody, a head, and sideways scrolling that the keyboard reaches.
 */
import type { ReactNode } from 'react';

export interface DataTableProps {
  readonly caption: string;
  readonly head: readonly string[];
  /** The first cell names the row. */
  readonly rows: readonly { readonly key: string; readonly cells: readonly ReactNode[] }[];
  readonly empty: string;
}

export function DataTable({ caption, head, rows, empty }: DataTableProps) {
  if (rows.length === 0) return <p className="note">{empty}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section className="table-box" aria-label={caption} tabIndex={0}>
      <table>
        <caption className="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {head.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, cells: [first, ...cells] }) => (
            <tr key={key}>
              <th scope="row">{first}</th>
              {cells.map((cell, nth) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a cell is its column
                <td key={nth}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
