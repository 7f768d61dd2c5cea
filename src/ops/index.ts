/** The door of src/ops. */
export type { GaugeSources } from './gauges.ts';
export type { InstallationLoad } from './installation-gauges.ts';
export { createMetrics, type Metrics, type RecoveryCause, type RequestSample, type TurnSample } from './metrics.ts';
export type { OperatorHands } from './operator-deeds.ts';
export { OperatorDesk } from './operator-desk.ts';
export { countStuck } from './operator-view.ts';
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
