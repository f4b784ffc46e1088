/** Both ends belong to it. */
export interface NumberRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Where clouds tell a virtual machine its secrets: where this host is one, they are the host's. Link-local addresses, and the one
 * that Amazon has beside them.
 */
export const METADATA = ["ip daddr 169.254.0.0/16", "ip6 daddr { fe80::/10, fd00:ec2::254 }"] as const;

/**
 * Packets of user-mode networking are QEMU's own, so its user tells them from all others. They go anywhere but to this host:
 * its loopback and every other address of it, whatever it listens on. Answers to who came through a forwarded port do.
 * Names come from QEMU's own resolver, which asks the host's: where that is on this host, the guest needs another.
 */
export function rules(uid: number, range: NumberRange | null = null): string {
  const who = range === null ? `${uid}` : `{ ${uid}, ${range.first}-${range.last} }`;
  const table = `inet nodeyard_qemu_${uid}`;
  return [
    // Made, emptied and made again in one transaction: there is no moment without rules.
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
