/** Debian packages that hold the programs which are run on a sliver host. */
const PACKAGES = {
  "lxc-start": "lxc",
  btrfs: "btrfs-progs",
  "mkfs.btrfs": "btrfs-progs",
  nft: "nftables",
  ip: "iproute2",
  tc: "iproute2",
  "ssh-keygen": "openssh-client",
  sshd: "openssh-server",
  setpriv: "util-linux",
  useradd: "passwd",
  mmdebstrap: "mmdebstrap",
} as const;
export type Program = keyof typeof PACKAGES;

/** Some programs with the package of each. */
export function packagesOf(programs: readonly Program[]): Readonly<Record<string, string>> {
  return Object.fromEntries(programs.map((program) => [program, PACKAGES[program]]));
}

/** What to do where a program is not there; by its name or path. */
export function howToInstall(program: string): string {
  const name = program.slice(program.lastIndexOf("/") + 1);
  const held: string | undefined = Object.hasOwn(PACKAGES, name) ? PACKAGES[name as Program] : undefined;
  return `${name} is not installed here${held === undefined ? "" : `: apt-get install ${held}`}`;
}
