/**
 * Owns: how the page calls what claims can be paused of.
 */
import { t } from './words.ts';

export function surfaceName(surface: 'app' | 'slack'): string {
  return surface === 'app' ? t('the web chat') : t('Slack');
}

/** Both null: the installation. */
export function placeName({ workspace, surface }: { readonly workspace: string | null; readonly surface: 'app' | 'slack' | null }): string {
  if (surface !== null) return surfaceName(surface);
  return workspace === null ? t('the installation') : t('the workspace {slug}', { slug: workspace });
}
