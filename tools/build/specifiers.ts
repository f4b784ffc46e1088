const IN_TYPES = /\b(from|import)(\s*\(?\s*)"(\.{1,2}\/[^"\n]+)\.ts"/g;
const IN_CODE = /new URL\("(\.{1,2}\/[^"\n]+)\.ts", import\.meta\.url\)/g;

const IN_PLAIN = /require\("(\.{1,2}\/[^"\n]+)\.ts"\)/g;

/** Relative imports of a declaration file name the built files. */
export function rewriteTypes(text: string): string {
  return text.replace(IN_TYPES, '$1$2"$3.js"');
}

/** Files that are started by URL (workers) name the built ones. */
export function rewriteUrls(text: string): string {
  return text.replace(IN_CODE, 'new URL("$1.js", import.meta.url)');
}

/** Files that are not TypeScript, too. */
export function rewriteRequires(text: string): string {
  return text.replace(IN_PLAIN, 'require("$1.js")');
}
