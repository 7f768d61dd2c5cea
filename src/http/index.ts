/**
 * The door of src/http.
 */
export { openDoor } from './agent/doors.ts';
export { type AgentListenerOptions, createAgentListener } from './agent/listener.ts';
export type { Authenticator } from './auth/authenticator.ts';
export { BrowserKey } from './auth/browser-key.ts';
export { Cookies } from './auth/cookies.ts';
export { CALLBACK_PATH } from './auth/get-callback.ts';
export { localAuthenticator, requireLocalAdmin, requireLoopback } from './auth/local.ts';
export { PublicSite } from './auth/public-site.ts';
export { signedInAuthenticator } from './auth/signed-in.ts';
export { buildOpenApi } from './openapi.ts';
export type { ModelAdminPort } from './ops/admin-models.ts';
export type { PeopleAdminPort } from './ops/admin-people.ts';
export type { RepositoryAdminPort } from './ops/admin-repositories.ts';
export type { SlackAdminPort } from './ops/admin-slack.ts';
export { createEarlyOpsListener, createOpsListener, type EarlyOpsListener, type OpsListenerOptions } from './ops/listener.ts';
export { operatorDoor, type RoleToken } from './ops/operator-door.ts';
export type { AdminGuard, Operator } from './ops/operator-guard.ts';
export type { OperatorPort } from './ops/operator-routes.ts';
export type { PartState, ReadinessPart } from './ops/readiness.ts';
export { ROUTE_NEEDS } from './ops/roles.ts';
export type { OpsSignIn } from './ops/sign-in.ts';
export type { BearerDoor, ContextItems, EventSink, LiveStreams, SessionFacts, SignInDoor, SlackDoor, Stages } from './ports.ts';
export type { RequestObserver, RequestReport } from './route.ts';
export type { HttpListener } from './server.ts';
export { createWebListener, type WebListenerOptions } from './web/listener.ts';
