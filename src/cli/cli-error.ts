/** An error that the command's user can do something about. It's printed without its stack. */
export class CliError extends Error {}

export const notRunning = 'Offhook is not running here. Start it with: npm start';
