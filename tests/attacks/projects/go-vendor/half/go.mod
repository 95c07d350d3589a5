module example.com/half

go 1.18
