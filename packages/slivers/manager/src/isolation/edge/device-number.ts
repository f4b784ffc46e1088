/** The two numbers of a device, as Linux packs them. */
export function deviceNumber(rdev: number): readonly [major: number, minor: number] {
  return [(rdev >> 8) & 0xfff, (rdev & 0xff) | ((rdev >> 12) & 0xfff00)];
}
