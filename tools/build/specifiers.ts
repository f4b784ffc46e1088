const IN_TYPES = /\b(from|import)(\s*\(?\s*)"(\.{1,2}\/[^"\n]+)\.ts"/g;
const IN_CODE = /new URL\("(\.{1,2}\/[^"\n]+)\.ts", import\.meta\.url\)/g;

/** Relative imports of a declaration file name the built files. The compiler rewrites those of the code alone. */
export function rewriteTypes(text: string): string {
  return text.replace(IN_TYPES, '$1$2"$3.js"');
}

/** Files that are started by URL (workers) name the built ones; the compiler knows only imports. */
export function rewriteUrls(text: string): string {
  return text.replace(IN_CODE, 'new URL("$1.js", import.meta.url)');
}
