/** An error that the user of the command can act on. It is printed without its stack. */
export class CliError extends Error {}

export const notRunning = 'Offhook is not running here. Start it with: npm start';
