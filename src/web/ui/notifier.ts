/**
 * Owns: notifications of the system: whether the person wants them, asking the browser for leave (only on their own press), showing one.
 * Does not own: when there is something to tell (use-finish-notice.ts).
 */
import { readSetting, writeSetting } from '../settings.ts';
import { Store } from '../store/store.ts';

/** `unsupported`: this browser has none here. `blocked`: the person wants them, and the browser does not let us. */
export type NotifierState = 'unsupported' | 'off' | 'on' | 'blocked';

const name = 'heph.notify';

function stateNow(): NotifierState {
  if (!('Notification' in globalThis)) return 'unsupported';
  if (readSetting(name) !== 'on') return 'off';
  return Notification.permission === 'granted' ? 'on' : 'blocked';
}

export class Notifier {
  readonly state = new Store<NotifierState>(stateNow());

  /** Call it from a press: a browser gives leave only then. */
  async turn(on: boolean): Promise<void> {
    writeSetting(name, on ? 'on' : null);
    if (on && Notification.permission === 'default') await Notification.requestPermission();
    this.state.set(stateNow());
  }

  /** @param tag pages of one browser that tell the same thing show it once */
  show(title: string, { body, tag }: { body: string; tag: string }): void {
    if (stateNow() !== 'on') return;
    try {
      const notification = new Notification(title, { body, tag, icon: '/favicon.svg' });
      notification.onclick = () => {
        window.focus();
        notification.close();
      };
    } catch {
      // Some browsers of phones allow notifications to service workers only.
    }
  }
}
