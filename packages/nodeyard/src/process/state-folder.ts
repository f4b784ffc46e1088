/** Where the state folder is looked for, first match first. Its name is short: a Unix socket's path holds 107 bytes. */
export interface StateFolderInput {
  /** `--state`. */
  readonly option: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly isRoot: boolean;
}

/** `--state`, NODEYARD_STATE, /var/lib/nodeyard for root, $XDG_STATE_HOME/nodeyard, ~/.local/state/nodeyard. */
export function stateFolder({ option, env, home, isRoot }: StateFolderInput): string {
  const named = option ?? given(env.NODEYARD_STATE);
  if (named !== undefined) return named;
  if (isRoot) return "/var/lib/nodeyard";
  // Relative values are to be ignored (XDG Base Directory Specification, "Basics").
  const xdg = given(env.XDG_STATE_HOME);
  return xdg?.startsWith("/") ? `${xdg}/nodeyard` : `${home}/.local/state/nodeyard`;
}

function given(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}
