import type { Reply } from "@nodeyard/client";
import { z } from "zod";

/** A lease as the API shows it. */
export type LeaseRow = Reply<"get_leases">;

const text = z.string();
const seconds = z.int().nullish();

/** The body of a request for a guest. What asks for more than a node as its label has it is refused, so it must be empty. */
export const guestSchema = z.object({
  environment: z.object({
    hw: z.object({ arch: text, constraints: z.unknown().optional() }),
    os: z.object({ compose: text }),
    pool: text.nullish(),
    kickstart: z.record(text, z.unknown()).nullish(),
  }),
  keyname: text,
  priority_group: text.nullish(),
  user_data: z.record(text, z.unknown()).nullish(),
  log_types: z.array(z.tuple([text, z.enum(["url", "blob"])])).nullish(),
  skip_prepare_verify_ssh: z.boolean().nullish(),
  watchdog_dispatch_delay: seconds,
  watchdog_period_delay: seconds,
  post_install_script: text.nullish(),
  shelfname: text.nullish(),
});

/** What a caller asked for; a lease remembers it in its `data`. */
export type GuestRequest = Readonly<z.infer<typeof guestSchema>>;

/** A guest, and the lease whose node it is. */
export interface Guest {
  readonly lease: LeaseRow;
  readonly asked: GuestRequest;
}

/** The guest of a lease; undefined: no connector of Artemis made it, or it was deleted. */
export function guestOf(lease: LeaseRow): Guest | undefined {
  if (lease.job?.system !== "artemis" || lease.data === null || lease.state === "released") return undefined;
  const asked = guestSchema.safeParse(JSON.parse(lease.data));
  return asked.success ? { lease, asked: asked.data } : undefined;
}

/** Why a node cannot be what the caller asks for; undefined: it can. */
export function beyond({
  environment,
  post_install_script: script,
  shelfname,
}: GuestRequest): string | undefined {
  if (Object.keys(environment.kickstart ?? {}).length > 0)
    return "environment.kickstart: nodes are made from images; choose a compose whose rule has such an image";
  if (script) return "post_install_script: nothing is run on nodes; use the prepare step of the plan";
  return shelfname
    ? "shelfname: there are no shelves; ready nodes are kept by min-ready of the label"
    : undefined;
}

const STATES = {
  waiting: "provisioning",
  gathering: "provisioning",
  granted: "ready",
  failed: "error",
  released: "condemned",
} as const;

/** A guest as Artemis shows it (`GuestResponse` of its API 0.0.72 to 0.0.84). `node`: once there is one. */
export function shown(
  { lease, asked }: Guest,
  node: Reply<"list_lease_nodes">["items"][number] | undefined,
): object {
  const ctime = lease.created;
  return {
    guestname: lease.job?.id,
    owner: lease.job?.name ?? lease.owner,
    shelf: null,
    environment: asked.environment,
    address: node?.interface_ip ?? null,
    ssh: { username: node?.username ?? "root", port: node?.connection_port ?? 22, keyname: asked.keyname },
    state: STATES[lease.state],
    state_mtime: ctime,
    mtime: ctime,
    ctime,
    user_data: asked.user_data ?? {},
    skip_prepare_verify_ssh: asked.skip_prepare_verify_ssh ?? false,
    post_install_script: null,
    console_url: null,
    console_url_expires: null,
    log_types: asked.log_types ?? [],
    watchdog_dispatch_delay: asked.watchdog_dispatch_delay ?? null,
    watchdog_period_delay: asked.watchdog_period_delay ?? null,
    security_group_rules_ingress: null,
    security_group_rules_egress: null,
    poolname: node?.provider ?? null,
    last_poolname: node?.provider ?? null,
  };
}
