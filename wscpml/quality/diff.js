
for (const each of data.tables) table(each, `${each.name}.csv`);
