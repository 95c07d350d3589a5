"use strict";

for (const file of require("./support/found").tests()) require(file);
