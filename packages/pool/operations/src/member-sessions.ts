/**
 * Whether a session is that of a Nodeyard process. `members`: names below MEMBERS, which end in the number of their session, in
 * hexadecimal. Python launchers have none.
 */
export function isMemberSession(members: readonly string[], session: bigint): boolean {
  const suffix = `-${session.toString(16)}`;
  return members.some((name) => name.endsWith(suffix));
}
