import { execFileSync } from "node:child_process";
import { bootKernel } from "./boot-kernel.ts";
import { BUILD_PATH } from "./require.ts";

/** An image to take through its life: how it is built, and how it boots. */
export interface ImageKind {
  readonly elements: readonly string[];
  readonly dibCommand: string;
  readonly env: Readonly<Record<string, string>>;
  /** What the provider is told of it. */
  readonly boot: Readonly<Record<string, string>>;
  readonly ram: number;
  /** GiB; not below the image's. */
  readonly disk: number;
  /** How often it is built: the third build retires the first. */
  readonly builds: number;
}

/** The smallest: programs of this machine, no mirror, booted by a kernel from outside. */
export async function mini(cache: string): Promise<ImageKind> {
  const { kernel, initrd } = await bootKernel();
  return {
    elements: ["nodeyard-mini", "nodeyard-boot"],
    dibCommand: "disk-image-create -n",
    env: { PATH: BUILD_PATH, DIB_IMAGE_CACHE: cache, DIB_IMAGE_SIZE: "1" },
    boot: { kernel, initrd, "kernel-arguments": "console=ttyS0 quiet panic=-1" },
    ram: 256,
    disk: 2,
    builds: 3,
  };
}

/** Debian as diskimage-builder makes it, with its own boot loader and systemd; from the mirror that apt uses here. */
export function debian(cache: string): ImageKind {
  const release = execFileSync("sh", ["-c", ". /etc/os-release && echo $VERSION_CODENAME"], {
    encoding: "utf8",
  }).trim();
  return {
    elements: ["debian-minimal", "vm", "nodeyard-debian"],
    dibCommand: "disk-image-create",
    env: {
      PATH: BUILD_PATH,
      DIB_IMAGE_CACHE: cache,
      DIB_RELEASE: release,
      DIB_DISTRIBUTION_MIRROR: mirrorOf(release),
      DIB_APT_SOURCES_CONF: sources(release),
    },
    boot: {},
    ram: 512,
    disk: 4,
    builds: 1,
  };
}

function sources(release: string): string {
  const updates = mirrorOf(`${release}-updates`);
  return [release, `${release}-updates`]
    .map(
      (suite, at) =>
        `${at === 0 ? "default" : "updates"}:deb ${at === 0 ? mirrorOf(release) : updates} ${suite} main`,
    )
    .join("\n");
}

function mirrorOf(suite: string): string {
  const lines = execFileSync(
    "apt-get",
    ["indextargets", "--format", "$(RELEASE) $(COMPONENT) $(CREATED_BY) $(REPO_URI)"],
    { encoding: "utf8" },
  ).split("\n");
  const found = lines
    .map((line) => line.split(" "))
    .find(([release, component, by]) => {
      return release === suite && component === "main" && by === "Packages";
    });
  if (found?.[3] === undefined) throw new Error(`apt knows no ${suite} main; run apt-get update`);
  return found[3].replace(/\/$/, "");
}
