module example.com/area

go 1.18

require example.com/same v0.0.0

replace (
	example.com/half => ./half
	example.com/same => ./same
)
