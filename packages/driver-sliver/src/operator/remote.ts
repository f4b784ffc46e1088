import type { Readable } from "node:stream";

/** A machine that the operator may log in to, and run commands on. */
export interface Remote {
  readonly name: string;
  /**
   * Runs a line in the login's shell, with `input` on its standard input. Resolves with its standard output; rejects with SliverHostError,
   * whose message ends with what the command said.
   */
  run(
    line: string,
    options: { readonly signal: AbortSignal; readonly input?: string | Readable },
  ): Promise<string>;
  /** Where the login goes: name or address, and port. Absent: to this machine itself. */
  readonly target?: (signal: AbortSignal) => Promise<{ readonly host: string; readonly port: number }>;
}

/** Programs for a sliver host, on this machine. */
export interface Bundle {
  /** SHA-256 of its list of programs, hex. */
  readonly digest: string;
  /** Bytes of the runtime that goes along. */
  readonly runtimeSize: number;
  /** What `uname -sm` says where the runtime runs. */
  readonly platform: string;
  /** All of it as a gzipped tar archive; read once. */
  open(): Readable;
}
