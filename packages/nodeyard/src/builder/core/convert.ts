/** How `qemu-img` calls a format, and the options with which clouds take it. */
const TARGETS: Readonly<Record<string, readonly string[]>> = {
  raw: ["raw"],
  qcow2: ["qcow2"],
  // A fixed size that is exactly the disk's, as Azure and Xen want it.
  vhd: ["vpc", "-o", "subformat=fixed,force_size=on"],
  vhdx: ["vhdx"],
  vmdk: ["vmdk", "-o", "subformat=streamOptimized"],
  vdi: ["vdi"],
};
/** What is converted from, the best first: raw needs no reading of tables. */
const SOURCES = ["raw", "qcow2"];
/**
 * Commands that make the formats still missing of those that are there: `qemu-img convert`, one for each. What diskimage-builder
 * is asked for it converts itself; this is for programs that leave one format.
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
