/** What the launcher keeps about sliver hosts, in its state folder. Both files are secret. */
export interface SliverPaths {
  /** Signs documents. */
  readonly signingKeys: string;
  /** Logs in to control accounts; its public half is beside it, with `.pub`. */
  readonly controlKey: string;
}

/** Where they are in a state folder. */
export function sliverPaths(stateFolder: string): SliverPaths {
  return {
    signingKeys: `${stateFolder}/slivers/signing-keys.json`,
    controlKey: `${stateFolder}/slivers/control-key`,
  };
}
