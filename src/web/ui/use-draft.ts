/**
 * Owns: the unsent words of the composer, kept in this browser for each conversation until they are sent.
 */
import { useAui, useAuiState } from '@assistant-ui/react';
import { useEffect } from 'react';
import { storageOr } from './create-page.ts';

/** @param key names account and conversation */
export function useDraft(key: string): void {
  const aui = useAui();
  const text = useAuiState((state) => state.composer.text);
  useEffect(() => {
    const saved = storageOr('localStorage').getItem(key);
    if (saved !== null && aui.composer.getState().text === '') aui.composer.setText(saved);
  }, [aui, key]);
  useEffect(() => {
    const storage = storageOr('localStorage');
    try {
      if (text === '') storage.removeItem(key);
      else storage.setItem(key, text);
    } catch {
      // A full storage loses the draft with the tab, nothing more.
    }
  }, [key, text]);
}
