// Remembers the list of calls that the user saw last, so that a call's page leads back to it.

let address = '#/calls';

export const lastList = () => address;

export function rememberList(shown) {
  address = shown;
}
