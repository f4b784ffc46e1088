/**
 * For scripts that make what outlives them: a reader who closes the pipe that they write to (`| head`) would end them where they are, by an
 * error event, and whatever they started would be left. With this they go on to their end, and take it away there.
 */
export function outliveReader(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
}
