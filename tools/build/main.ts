/**
 * `npm run build`: builds the packages into their `dist`, and the programs of a sliver host into one folder of the sliver package's `dist`.
 * `-- --verify` installs and runs the result; `-- --install FOLDER` installs it with FOLDER as npm's prefix; `-- --pack FOLDER` writes the
 * files of a release into FOLDER: what npm installs, an SBOM and the licences; `-- --deb FOLDER` writes the Debian packages, `-- --oci FOLDER`
 * the images of containers. `-- --release [FOLDER]` writes all of these, the chart, notes and digests into FOLDER (release), which is what one
 * publishes (docs/how-to/publish-a-release.md). `-- --bundle FOLDER`: only the programs of a sliver host, into FOLDER.
 */
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { demandTools } from "../../testing/skipped.ts";
import { build } from "./build.ts";
import { bundle, verifyBundle } from "./bundle.ts";
import { debianPackages } from "./debian.ts";
import { ociImages } from "./oci.ts";
import { pack, writeParts } from "./release.ts";
import { installAll, verify } from "./verify.ts";
import { demandReleasable, wholeRelease } from "./whole-release.ts";

const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const options = {
  verify: { type: "boolean" },
  install: { type: "string" },
  pack: { type: "string" },
  deb: { type: "string" },
  oci: { type: "string" },
  release: { type: "boolean" },
  bundle: { type: "string" },
} as const;
try {
  const {
    values,
    positionals: [folder = "release"],
  } = parseArgs({ allowPositionals: true, options });
  if (values.bundle !== undefined) {
    verifyBundle(await bundle(root, values.bundle), tmpdir());
    process.exit(0);
  }
  // First: the build takes minutes.
  demandTools(
    "npm run build",
    "sphinx-build",
    ...((values.deb ?? values.release) ? ["dpkg-buildpackage", "dh"] : []),
    ...((values.oci ?? values.release) ? ["mmdebstrap"] : []),
  );
  const commit = values.release ? demandReleasable(root, resolve(folder)) : "";
  const dists = await build(root);
  console.log(`built ${dists.map((dist) => relative(root, dist)).join(", ")}`);
  const programs = await bundle(root, join(root, "packages/slivers/manager/dist/bundle"));
  console.log(`bundled ${relative(root, programs)}`);
  if (values.pack !== undefined) {
    const folder = resolve(values.pack);
    for (const file of [...pack(dists, folder), ...writeParts(root, folder)]) console.log(`wrote ${file}`);
  }
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  if (values.deb !== undefined) {
    for (const file of await debianPackages(root, programs, resolve(values.deb), version))
      console.log(`wrote ${file}`);
  }
  if (values.oci !== undefined)
    for (const file of ociImages(root, resolve(values.oci), version)) console.log(`wrote ${file}`);
  if (values.release)
    for (const file of await wholeRelease(root, dists, programs, resolve(folder), version, commit))
      console.log(`wrote ${file}`);
  if (values.install !== undefined) {
    const files = pack(dists, join(resolve(values.install), "files"));
    installAll(files, resolve(values.install));
  }
  if (values.verify) {
    const page = join(root, "docs/how-to/install.md");
    for (const what of [
      ...verify(pack(dists, join(root, ".tmp/packed")), page),
      ...verifyBundle(programs, tmpdir()),
    ])
      console.log(`works when installed: ${what}`);
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
