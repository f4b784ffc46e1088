/** Loose, as the SDK's models judge what goes in and out. */
export type Json = Record<string, unknown>;
export interface Thing extends Json {
  readonly id: string;
  name: string;
  /** Monotonic times, milliseconds: not on the wire. */
  readonly madeAt: number;
  deletedAt?: number;
}
export type Reference = { readonly id?: string; readonly name?: string; readonly href?: string };
export interface Instance extends Thing {
  readonly profile: string;
  readonly zone: string;
  readonly spot: boolean;
  readonly nic: string;
  readonly group: string;
  readonly volume: string;
  readonly keeps: boolean;
  readonly address: string;
  readonly image: string;
  /** What became of it beyond its normal life. */
  status?: "failed" | "stopped";
  reason?: { readonly code: string; readonly message: string };
  /** Stops and starts, each of which begins when the one before has ended. */
  actions?: { readonly type: "stop" | "start"; readonly at: number }[];
}
export interface FloatingIp extends Thing {
  readonly zone: string;
  readonly group: string;
  readonly address: string;
  /** The machine that has it. */
  machine?: string;
}
export interface Volume extends Thing {
  readonly zone: string;
  readonly group: string;
  machine?: string;
}
export interface Image extends Thing {
  readonly os: string;
  readonly group: string;
  readonly owner: "provider" | "user";
  readonly createdAt: string;
}

/** What of a region its things look at, when they are shown. */
export interface World {
  readonly instances: ReadonlyMap<string, Instance>;
  readonly volumes: ReadonlyMap<string, Volume>;
  readonly images: ReadonlyMap<string, Image>;
  readonly groups: ReadonlyMap<string, string>;
  readonly url: () => string;
  statusOf(one: Instance): string;
  imageStatusOf(one: Image): string;
}
