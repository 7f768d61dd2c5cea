/**
 * Owns: a dialog over the page: it keeps the keyboard inside, closes with Escape or a press beside it, and gives the focus back.
 */
import { type MouseEvent, type ReactNode, type RefObject, useEffect } from 'react';

interface DialogProps {
  /** Close it with `box.current.close()`; `onClose` follows, however it was closed. */
  box: RefObject<HTMLDialogElement | null>;
  label: string;
  onClose(): void;
  className?: string;
  children: ReactNode;
}

export function Dialog({ box, label, onClose, className = '', children }: DialogProps) {
  useEffect(() => {
    const dialog = box.current;
    if (dialog?.open === false) dialog.showModal();
  }, [box]);
  const onClick = (event: MouseEvent) => {
    if (event.target === box.current) box.current?.close();
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard closes it with Escape.
    <dialog ref={box} className={`dialog ${className}`} aria-label={label} onClose={onClose} onClick={onClick}>
      <div className="dialog-inside">{children}</div>
    </dialog>
  );
}
