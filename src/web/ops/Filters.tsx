/**
 * Owns: the filters of a list: they stand in the address, so a change is another view with its own link.
 */
import { type FormEvent, useId } from 'react';
import type { Address } from './address.ts';
import { Link } from './Link.tsx';
import { t } from './words.ts';

export interface FilterField {
  /** Of the query. */
  readonly name: string;
  readonly label: string;
  /** Absent: any text. */
  readonly choices?: readonly string[];
  /** What no choice means; else `any`. */
  readonly none?: string;
}

export interface FiltersProps {
  readonly address: Address;
  readonly go: (to: Address) => void;
  readonly fields: readonly FilterField[];
}

export function Filters({ address, go, fields }: FiltersProps) {
  const id = useId();
  const apply = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const chosen = fields.map(({ name }) => [name, String(form.get(name) ?? '').trim()]);
    go({ ...address, ...Object.fromEntries(chosen), before: '', after: '' });
  };
  // Another address fills the fields anew.
  return (
    <form className="filter-form" key={JSON.stringify(address)} onSubmit={apply} aria-label={t('Filters')}>
      {fields.map(({ name, label, choices, none = t('any') }) => (
        <div key={name}>
          <label htmlFor={`${id}-${name}`}>{label}</label>
          {choices ? (
            <select id={`${id}-${name}`} name={name} defaultValue={address[name] ?? ''}>
              <option value="">{none}</option>
              {choices.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          ) : (
            <input id={`${id}-${name}`} name={name} defaultValue={address[name] ?? ''} autoComplete="off" />
          )}
        </div>
      ))}
      <button type="submit" className="button">
        {t('Filter')}
      </button>
    </form>
  );
}

/** Of the address, what the server is to be asked with. */
export function queryOf(address: Address, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (address[name] ? [[name, address[name]]] : [])));
}

export interface PagesProps {
  readonly address: Address;
  readonly go: (to: Address) => void;
  /** The member of the address that names a page, and that of the next one. */
  readonly by: 'before' | 'after';
  readonly next: string | number | null | undefined;
}

export function Pages({ address, go, by, next }: PagesProps) {
  return (
    <p className="pages">
      {address[by] && (
        <Link to={{ ...address, [by]: '' }} go={go}>
          {t('First page')}
        </Link>
      )}
      {next !== null && next !== undefined && (
        <Link to={{ ...address, [by]: String(next) }} go={go}>
          {t('Next page')}
        </Link>
      )}
    </p>
  );
}
