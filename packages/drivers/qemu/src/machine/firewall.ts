/** A range of numbers, both ends included. */
export interface NumberRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Addresses at which clouds serve a virtual machine's secrets. When this host is such a machine, they are the host's secrets, so
 * guests must not reach them. Link-local addresses, and Amazon's additional IPv6 address.
 */
export const METADATA = ["ip daddr 169.254.0.0/16", "ip6 daddr { fe80::/10, fd00:ec2::254 }"] as const;

/**
 * Rules for user-mode networking. QEMU itself sends the guests' packets, so its user id identifies them. They may go anywhere
 * except to this host: to its loopback and to all of its addresses. Answers to connections through a forwarded port are allowed.
 * QEMU's resolver forwards names to the host's resolver; if that one listens on this host, guests need another.
 */
export function rules(uid: number, range: NumberRange | null = null): string {
  const who = range === null ? `${uid}` : `{ ${uid}, ${range.first}-${range.last} }`;
  const table = `inet nodeyard_qemu_${uid}`;
  return [
    // Created, deleted and created again in one transaction, so that there is no moment without rules.
    `table ${table} {}`,
    `delete table ${table}`,
    `table ${table} {`,
    "  chain output {",
    "    type filter hook output priority 0; policy accept;",
    `    meta skuid ${who} ct direction reply accept`,
    ...METADATA.map((where) => `    meta skuid ${who} ${where} reject`),
    `    meta skuid ${who} fib daddr type { local, broadcast, multicast } reject`,
    "  }",
    "}",
    "",
  ].join("\n");
}
