/** How `qemu-img` calls a format, and the options with which clouds take it (qemu-img(1)). */
const TARGETS: Readonly<Record<string, readonly string[]>> = {
  raw: ["raw"],
  qcow2: ["qcow2"],
  // A fixed size that is exactly the disk's, as Azure and Xen want it.
  vhd: ["vpc", "-o", "subformat=fixed,force_size=on"],
  vhdx: ["vhdx"],
  vmdk: ["vmdk", "-o", "subformat=streamOptimized"],
  vdi: ["vdi"],
};
/** Source formats of conversions, the best first: raw has no tables to read. */
const SOURCES = ["raw", "qcow2"];
/**
 * The `qemu-img convert` commands for missing formats, one for each; none where no source is there, or for a format that is
 * unknown. diskimage-builder makes all wanted formats itself; this is for build commands that leave only one. Pure.
 */
export function conversions(
  base: string,
  wanted: readonly string[],
  present: readonly string[],
): readonly (readonly string[])[] {
  const source = SOURCES.find((format) => present.includes(format));
  if (source === undefined) return [];
  return wanted
    .filter((format) => !present.includes(format) && format in TARGETS)
    .map((format) => {
      // The source's format is said, never probed: a raw image may begin with anything.
      const to = ["-O", ...TARGETS[format]!, `${base}.${source}`, `${base}.${format}`];
      return ["qemu-img", "convert", "-p", "-f", source, ...to];
    });
}
