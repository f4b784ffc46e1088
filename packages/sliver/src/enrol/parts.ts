import { CONTROL_USER, LAYOUT } from "./layout.ts";
import type { Part } from "./plan.ts";
import { sshdConfig, systemdUnit } from "./render.ts";

/** Everything that makes a machine a sliver host, in the order in which it is made. */
export function partsOf(options: {
  /** Name of the bundle's own folder. */
  readonly bundle: string;
  /** Where it was unpacked. */
  readonly from: string;
  readonly config: string;
  readonly systemd: boolean;
  /** What must be remembered to take all of it back. */
  readonly record: string;
}): readonly Part[] {
  const unit: Part[] = options.systemd
    ? [
        { kind: "file", path: LAYOUT.unit, mode: 0o644, text: systemdUnit() },
        { kind: "link", path: LAYOUT.wants, to: LAYOUT.unit },
      ]
    : [];
  const programs = `${LAYOUT.programs}/${options.bundle}`;
  return [
    { kind: "user", name: CONTROL_USER },
    { kind: "folder", path: LAYOUT.settings, mode: 0o755 },
    { kind: "folder", path: LAYOUT.state, mode: 0o700 },
    { kind: "folder", path: LAYOUT.programs, mode: 0o755 },
    { kind: "programs", path: programs, from: options.from },
    { kind: "link", path: LAYOUT.current, to: programs },
    { kind: "file", path: LAYOUT.config, mode: 0o600, text: options.config },
    { kind: "file", path: LAYOUT.record, mode: 0o600, text: options.record },
    { kind: "file", path: LAYOUT.sshd, mode: 0o644, text: sshdConfig() },
    ...unit,
  ];
}

/** What is removed with all that is in it, last first. */
export const REMOVED: readonly string[] = [
  LAYOUT.wants,
  LAYOUT.unit,
  LAYOUT.sshd,
  LAYOUT.state,
  LAYOUT.run,
  LAYOUT.pid,
  LAYOUT.due,
  LAYOUT.log,
];

/**
 * What is removed after the user, so that who is cut off before finds it again: what sshd was told and has to be told otherwise, what
 * was installed here, and the programs, since they do it. The link to them goes first: half of them are of no use.
 */
export const REMOVED_LAST: readonly string[] = [
  LAYOUT.told,
  LAYOUT.settings,
  LAYOUT.current,
  LAYOUT.programs,
];
