/**
 * Owns: the unsent words of the composer, kept in this browser for each conversation until they are sent.
 */
import { useAui, useAuiState } from '@assistant-ui/react';
import { useEffect } from 'react';
import { readSetting, writeSetting } from '../settings.ts';

/** @param name names account and conversation */
export function useDraft(name: string): void {
  const aui = useAui();
  const text = useAuiState((state) => state.composer.text);
  useEffect(() => {
    const saved = readSetting(name);
    if (saved !== null && aui.composer.getState().text === '') aui.composer.setText(saved);
  }, [aui, name]);
  useEffect(() => writeSetting(name, text === '' ? null : text), [name, text]);
}
