/** The door of src/ops. */
export type { GaugeSources } from './gauges.ts';
export type { InstallationLoad } from './installation-gauges.ts';
export { createMetrics, type Metrics, type RecoveryCause, type RequestSample, type TurnSample } from './metrics.ts';
export { OperatorActions, type OperatorHands } from './operator-actions.ts';
export { countStuck, OperatorView } from './operator-view.ts';
export {
  capacityPart,
  databasePart,
  drainingPart,
  environmentModelPart,
  listeningPart,
  migrationsPart,
  notePart,
  type Part,
} from './parts.ts';
export { type Recovery, recover } from './recovery.ts';
