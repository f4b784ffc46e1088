import { ANY, type ApiRole, type Claim, type Token } from "@nodeyard/model";

/** The caller of a route, and its rights. Made of a claim for each request. */
export interface Principal {
  /** For the audit, the rate and the owner of leases: `socket`, `listener`, `token:NAME`, or `oidc:ISSUER:NAME`. */
  readonly name: string;
  readonly role: ApiRole;
  /** ANY: no limit. So for tenants. */
  readonly labels: ReadonlySet<string>;
  readonly tenants: ReadonlySet<string>;
}

/** Who opens the Unix socket: only the user of the process can. Compared by identity: this caller has no limit of calls. */
export const BY_SOCKET: Claim = {
  ...{ origin: "socket", credential: "", limit: null },
  ...{ name: "socket", role: "operator", labels: [ANY], tenants: [ANY] },
};

/** Who shows the token of the listener, of this hash, which has always been for looking. */
export function byListener(hash: string): Claim {
  return {
    ...{ origin: "listener", credential: hash, limit: null },
    ...{ name: "listener", role: "viewer", labels: [ANY], tenants: [ANY] },
  };
}

const TOKEN_PREFIX = "token:";

/** Who shows a token by name: its rights now, as its record has them. */
export function byToken({ name, role, labels, tenants, hash, expires }: Token): Claim {
  return {
    ...{ origin: "token", credential: hash, limit: expires },
    ...{ name: `${TOKEN_PREFIX}${name}`, role, labels, tenants },
  };
}

/** The token that the claim is by. */
export function tokenOf({ name }: Claim): string {
  return name.slice(TOKEN_PREFIX.length);
}

/** The caller that has made this claim; sets, since each row asks them. */
export function principalOf({ name, role, labels, tenants }: Claim): Principal {
  return { name, role, labels: new Set(labels), tenants: new Set(tenants) };
}

/** Whether the caller sees the things of all tenants and labels. */
export function seesAll({ tenants, labels }: Principal): boolean {
  return tenants.has(ANY) && labels.has(ANY);
}

/** Whether the caller sees things of a tenant; null: things without a tenant, which only callers without a limit see. */
export function seesTenant({ tenants }: Principal, tenant: string | null): boolean {
  return tenants.has(ANY) || (tenant !== null && tenants.has(tenant));
}

/** Whether a label is shown and may be requested. */
export function seesLabel({ labels }: Principal, label: string): boolean {
  return labels.has(ANY) || labels.has(label);
}

/** Whether the call may see what jobs and drivers wrote for themselves. */
export function seesSecrets({ role }: Principal): boolean {
  return role === "operator" || role === "admin";
}

/** Whether the caller may change a lease: a user may change its own leases, and those of its tenants. */
export function mayChange(
  { name, role, tenants }: Principal,
  lease: { readonly owner: string; readonly tenant: string | null },
): boolean {
  if (role !== "user") return role === "operator" || role === "admin";
  return lease.owner === name || (lease.tenant !== null && tenants.has(lease.tenant));
}
