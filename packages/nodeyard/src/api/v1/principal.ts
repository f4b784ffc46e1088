import { ANY, type ApiRole, type Token } from "@nodeyard/model";

/** Whoever makes a call, and what it may do. */
export interface Principal {
  /** For the audit: `socket`, or `token:NAME`. */
  readonly name: string;
  readonly role: ApiRole;
  readonly labels: ReadonlySet<string>;
  readonly tenants: ReadonlySet<string>;
}

const ALL: ReadonlySet<string> = new Set([ANY]);

/** Who opens the Unix socket: only the user of the process can. */
export const SOCKET: Principal = { name: "socket", role: "operator", labels: ALL, tenants: ALL };

/** Who shows the token of the listener, which has always been for looking. */
export const LISTENER: Principal = { name: "listener", role: "viewer", labels: ALL, tenants: ALL };

/** Who shows a token by name. */
export function principalOf({ name, role, labels, tenants }: Token): Principal {
  return { name: `token:${name}`, role, labels: new Set(labels), tenants: new Set(tenants) };
}

/** Whether everything is shown, whoever it belongs to. */
export function seesAll({ tenants, labels }: Principal): boolean {
  return tenants.has(ANY) && labels.has(ANY);
}

/** Whether things of a tenant are shown; null: of nobody's. */
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

/** Whether a lease is the caller's to change: of a user those that it made, and those of the tenants that it is named for. */
export function mayChange(
  { name, role, tenants }: Principal,
  lease: { readonly owner: string; readonly tenant: string | null },
): boolean {
  if (role !== "user") return role === "operator" || role === "admin";
  return lease.owner === name || (lease.tenant !== null && tenants.has(lease.tenant));
}
