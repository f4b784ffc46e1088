/**
 * For scripts that start processes or machines which outlive them. If the reader of their output closes the pipe (`| head`), an error event
 * would end the script at once and leave behind what it started. With this module the script continues to its end and cleans up.
 */
export function outliveReader(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
}
