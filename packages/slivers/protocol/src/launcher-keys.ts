/** Files about sliver hosts in the launcher's state folder. Both are secret. */
export interface SliverPaths {
  /** Keys that sign documents. */
  readonly signingKeys: string;
  /** Private key for control accounts; the public key is in the same folder, with `.pub`. */
  readonly controlKey: string;
}

/** The paths in a state folder. */
export function sliverPaths(stateFolder: string): SliverPaths {
  return {
    signingKeys: `${stateFolder}/slivers/signing-keys.json`,
    controlKey: `${stateFolder}/slivers/control-key`,
  };
}
