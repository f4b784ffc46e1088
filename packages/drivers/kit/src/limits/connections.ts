import { type Clock, messageOf } from "@nodeyard/runtime";
import { CloudConfigError } from "../faults.ts";
import type { Wire } from "../wire.ts";
import { RenewedValue } from "./renewed-value.ts";

/** Connections that are made with settings, such as certificates, which change while the process runs. */
export class Connections<Settings, T extends { close(): Promise<void> }> {
  readonly #open: (settings: Settings) => T;
  #present: { readonly key: string; readonly made: T } | undefined;

  constructor(open: (settings: Settings) => T) {
    this.#open = open;
  }

  /** Those for the settings: new ones when they differ from the last. Requests under way on the former ones are completed. */
  of(settings: Settings): T {
    const key = JSON.stringify(settings);
    if (this.#present?.key === key) return this.#present.made;
    void this.#present?.made.close();
    const made = this.#open(settings);
    this.#present = { key, made };
    return made;
  }

  async close(): Promise<void> {
    await this.#present?.made.close();
  }
}

/** Whether a request may have failed because a certificate or its authority was replaced: the files may have the new one. */
export function isCertificateError(error: unknown): boolean {
  return /certificate|self.signed/i.test(messageOf(error));
}

/** Time limit of reading certificate files, milliseconds. */
const LOAD_MS = 60_000;

/**
 * A client whose certificates are read again each minute, and when one could not be verified or a call was refused: files are replaced in place. Opening it reads
 * nothing. Rejects with the errors of `read`, too.
 */
export function renewedWire<Settings>({
  clock,
  read,
  connect,
}: {
  readonly clock: Clock;
  readonly read: () => Settings;
  readonly connect: (settings: Settings) => Pick<Wire, "send" | "close">;
}): Pick<Wire, "send" | "close"> {
  const connections = new Connections(connect);
  const late = () => new CloudConfigError("the certificates were not read in time");
  const certificates = new RenewedValue({
    clock,
    load: async () => read(),
    endOf: () => null,
    loadMs: LOAD_MS,
    late,
  });
  return {
    async send(request) {
      try {
        const answer = await connections.of(await certificates.get()).send(request);
        // A server that is told of its clients after the handshake refuses a former certificate so.
        if (answer.status === 401 || answer.status === 403) certificates.refused();
        return answer;
      } catch (error) {
        if (isCertificateError(error)) certificates.refused();
        throw error;
      }
    },
    close: () => connections.close(),
  };
}
