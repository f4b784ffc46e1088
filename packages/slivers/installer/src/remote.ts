import type { Readable } from "node:stream";

/** A machine on which the operator can run commands. */
export interface Remote {
  readonly name: string;
  /**
   * Runs a command line in the login's shell, with `input` on its standard input. Resolves with its output. Rejects with SliverHostError,
   * whose message ends with the command's error output.
   */
  run(
    line: string,
    options: { readonly signal: AbortSignal; readonly input?: string | Readable },
  ): Promise<string>;
  /** Address of the login; absent for this machine. */
  readonly target?: (signal: AbortSignal) => Promise<{ readonly host: string; readonly port: number }>;
}

/** Programs for a sliver host, on this machine. */
export interface Bundle {
  /** SHA-256 of the list of programs, hexadecimal. */
  readonly digest: string;
  /** Size of the included Node runtime in bytes. */
  readonly runtimeSize: number;
  /** Output of `uname -sm` on machines where the runtime works. */
  readonly platform: string;
  /** All files as a gzipped tar archive. May be called once. */
  open(): Readable;
}
