/** The body of an error response. */
export interface Problem {
  readonly type: string;
  readonly text: string;
}

/** Reason phrases, by status; other statuses get "Error". */
const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  404: "Not Found",
  413: "Content Too Large",
  500: "Internal Server Error",
  503: "Service Unavailable",
};

/** The body of an error as of the old server: HTML or JSON if the client accepts it, else text (docs/contract/operations.md, "Headers"). */
export function problem(status: number, message: string, accept: string | undefined): Problem {
  const title = TITLES[status] ?? "Error";
  const code = `${status} ${title}`;
  const wanted = accept ?? "";
  if (wanted.includes("text/html"))
    return {
      type: "text/html; charset=UTF-8",
      text: `<html>\n <head>\n  <title>${code}</title>\n </head>\n <body>\n  <h1>${code}</h1>\n  ${escaped(message)}\n </body>\n</html>\n`,
    };
  if (wanted.includes("application/json"))
    return { type: "application/json", text: `${JSON.stringify({ message, code, title })}\n` };
  return { type: "text/plain; charset=UTF-8", text: `${code}\n\n${message}\n` };
}

/** The message may hold what a client sent. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
