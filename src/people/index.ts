/**
 * The door of src/people.
 */
export { PeopleAdmin } from './admin.ts';
export { BearerTokens } from './bearer.ts';
export { Issuer } from './issuer.ts';
export { SignIn } from './sign-in.ts';
export { SignInSweeper } from './sweeper.ts';
