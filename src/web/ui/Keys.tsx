import { keyNames, type Shortcut } from './shortcuts.ts';

/** The keys of a shortcut as caps. */
export function Keys({ shortcut }: { shortcut: Shortcut }) {
  return (
    <span className="keys">
      {keyNames(shortcut).map((name) => (
        <kbd key={name}>{name}</kbd>
      ))}
    </span>
  );
}
